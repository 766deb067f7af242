"""YQL as text: tokens, syntax trees, types and values."""
