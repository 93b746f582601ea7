"""The charts of a report, as inline SVG: bars, curves, histograms and grids of words."""
