"""The language of constraints and conditions: from text to a rule over knobs."""
