"""What Mateo-Sanz, Domingo-Ferrer and Sebé (2005) printed."""

TABLE_2 = """
PIL(Q)  IL1 0.693 0.902
PIL(m1) IL2 0.918 1.000
PIL(m2) IL3 0.531 0.977
PIL(m11) IL4 0.592 0.950
PIL(r)  IL5 0.781 0.995
PIL     IL  0.824 0.955
"""
"""Two measures, and Pearson's and Spearman's correlation of them over 109 maskings."""

TABLE_3 = """
Rankswap7     0      0      0      0.4540 0.5933
Mic3mul7      0.3640 0      0.4403 0.3022 0.3309
Micmul3       0.4987 0      0.7004 0.1846 0.5341
Noise16       0.4524 0.1608 0.4447 0.1342 0.4929
Scal_Mic3mul7 0.3760 0      0      0.2138 0.3309
Scal_Micmul3  0.4979 0      0      0.3631 0.5341
Scal_Noise16  0.4467 0      0      0.3271 0.4929
"""
"""Masking, PIL(Q), PIL(m1), PIL(m2), PIL(m11), PIL(r); Scal_ is with rescaling."""
