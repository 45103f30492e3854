width = 1320; height = 1080
load scripts.'/style.gp'
heads = 'easy_a easy_b medium_a medium_b hard_local hard_nonlocal'
maps = '"iid" "orthogonal" "quantile radii" "fixed radii" "simplex" "Hadamard" "antithetic" "antithetic fixed" "FAVOR++ antithetic" "trigonometric"'
set multiplot
set logscale x 2; set format x '2^{%L}'
set ylabel 'row L1 error of the weights' offset 1
do for [h = 1:6] {
  column = (h - 1) % 3; row = (h - 1) / 3
  set lmargin at screen 0.045 + column * 0.325; set rmargin at screen 0.045 + column * 0.325 + 0.27
  set tmargin at screen 0.97 - row * 0.285; set bmargin at screen 0.97 - row * 0.285 - 0.215
  set title word(heads, h) noenhanced
  set xlabel row == 1 ? 'features m' : ''
  set yrange [0:2.2]
  if (h == 6) { set key at screen 0.5,0.375 center bottom maxrows 2 width -1 } else { unset key }
  at(map) = rows(sprintf('$1 == "%s" && $2 == "%s"', word(heads, h), map), 'heads_by_features.csv')
  plot for [i = 1:words(maps)] at(word(maps, i)) using 3:4:5:6 with yerrorlines lt i title word(maps, i), \
       at('iid') using 3:9 with lines lt 11 title 'uniform attention'
}
set tmargin at screen 0.325; set bmargin at screen 0.10
set logscale y; set format y '10^{%L}'
set lmargin at screen 0.06; set rmargin at screen 0.48
set title 'polynomials'
set format x '%g'
set ylabel 'row L1 error of the weights'
set xlabel 'degree n'
set yrange [1e-3:10]
set key at screen 0.5,0.01 center bottom maxrows 2
at(family, head) = rows(sprintf('$1 == "%s" && $2 == "%s"', head, family), 'heads_by_degree.csv')
plot for [h = 1:6] at('Taylor', word(heads, h)) using 3:4 with linespoints lt h title word(heads, h) noenhanced, \
     for [h = 1:6] at('exponential limit', word(heads, h)) using 3:4 with lines lt h dt 4 notitle, \
     NaN with lines lt 10 dt 4 title 'exponential limit, each head'
set lmargin at screen 0.56; set rmargin at screen 0.985
set title 'spectra of the softmax weights, n = 1024'
unset logscale x; set format x '%g'
set xrange [0:1060]
set xlabel 'index i'; set ylabel 's_i / s_1'
set yrange [1e-17:2]
unset key
at2(head) = rows(sprintf('$1 == "%s"', head), 'heads_spectra.csv')
plot for [h = 1:6] at2(word(heads, h)) using 2:3 with lines lt h
unset multiplot
