"""Two trials, studies or recipes beside each other."""
