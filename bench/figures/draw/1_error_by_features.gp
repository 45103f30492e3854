width = 1320; height = 760
load scripts.'/style.gp'
maps = '"iid" "orthogonal" "quantile radii" "fixed radii" "simplex" "Hadamard" "antithetic" "antithetic fixed" "FAVOR++ antithetic" "trigonometric"'
file = 'error_by_features.csv'
set multiplot
set logscale xy
set xrange [12:*]
set format x '2^{%L}'; set logscale x 2
set format y '%g'
array sigmas[4] = [0.25, 0.5, 1, 2]
array lows[4] = [0.001, 0.02, 0, 0]
array highs[4] = [0.5, 2, 2.2, 2.2]
do for [row = 0:1] { do for [column = 1:4] {
  d = row == 0 ? 16 : 64
  set lmargin at screen 0.05 + (column - 1) * 0.24; set rmargin at screen 0.05 + (column - 1) * 0.24 + 0.19
  set tmargin at screen row == 0 ? 0.94 : 0.51; set bmargin at screen row == 0 ? 0.61 : 0.18
  set title sprintf('d = %d, σ = %g', d, sigmas[column])
  if (column < 3) { set logscale y } else { unset logscale y }
  set yrange [lows[column]:highs[column]]
  if (row == 1) { set xlabel 'features m' } else { unset xlabel }
  if (column == 1) { set ylabel 'row L1 error of the weights' } else { unset ylabel }
  if (row == 1 && column == 4) { set key at screen 0.5,0.015 center bottom maxrows 2 width -1 } else { unset key }
  at(map) = rows(sprintf('$1 == %d && $2 == %g && $3 == "%s"', d, sigmas[column], map), file)
  plot for [i = 1:words(maps)] at(word(maps, i)) using 4:5:6:7 with yerrorlines lt i title word(maps, i), \
       at('iid') using 4:10 with lines lt 11 title 'uniform attention'
}}
set label 1 'softmax of 128 normal tokens of standard deviation σ; median and quartiles over draws; trigonometric beyond the frame: negative normalisers' at screen 0.5,0.09 center
unset title; unset xlabel; unset ylabel; unset tics; unset border; unset key; unset grid
set lmargin at screen 0; set rmargin at screen 1; set tmargin at screen 1; set bmargin at screen 0
set xrange [1:2]; set yrange [1:2]
plot 1/0 notitle
unset multiplot
