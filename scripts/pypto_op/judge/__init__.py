"""The judge: inputs, suite, comparison over cases, report. It never imports candidate code."""
