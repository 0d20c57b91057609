"""The kinds of knob, one class a kind.

=======================  ==========================================  ==================  =======
kind                     value                                       cells               ordered
=======================  ==========================================  ==================  =======
:class:`OrderedValues`   one of a list whose order means something   1                   yes
:class:`IntegerRange`    an integer                                  1                   yes
:class:`FloatRange`      a float                                     1 with a step or 0  yes
:class:`Choice`          one of a list without order                 1                   no
:class:`Flag`            ``True`` or ``False``                       1                   no
:class:`Permutation`     a tuple: the items in some order            1 a position        no
:class:`Assignment`      a map: item -> one of the options           1 an item           no
=======================  ==========================================  ==================  =======

::

    OrderedValues("tile", (1, 2, 4), default=2)
    FloatRange("lr", 1e-5, 1, scale="log", when="optimizer == 'sgd'")
"""

from autotune.space.knobs.items import Assignment, Permutation
from autotune.space.knobs.listed import Choice, Flag, OrderedValues
from autotune.space.knobs.ranges import FloatRange, IntegerRange, Scale

__all__ = [
    "Assignment",
    "Choice",
    "Flag",
    "FloatRange",
    "IntegerRange",
    "OrderedValues",
    "Permutation",
    "Scale",
]
