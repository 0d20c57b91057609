"""What is tuned: compress this Python's own source. Any program will do that prints its metrics as JSON."""

import argparse
import inspect
import json
import lzma
import time
import zlib

parser = argparse.ArgumentParser()
parser.add_argument("--method", choices=["zlib", "lzma"])
parser.add_argument("--level", type=int)
options = parser.parse_args()

text = inspect.getsource(argparse).encode() * 3
start = time.perf_counter()
packed = (
    zlib.compress(text, options.level)
    if options.method == "zlib"
    else lzma.compress(text, preset=options.level)
)
seconds = time.perf_counter() - start

module = {"zlib": zlib, "lzma": lzma}[options.method]
if module.decompress(packed) != text:
    raise SystemExit("the text does not come back")
print(json.dumps({"time": seconds, "ratio": len(packed) / len(text)}))
