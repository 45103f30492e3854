width = 1000; height = 440
load scripts.'/style.gp'
stats 'dimension_fit.csv' skip 1 using 1:2 nooutput
slope = STATS_min_x; intercept = STATS_min_y
set multiplot layout 1,2 margins 0.07,0.98,0.24,0.92 spacing 0.12
set logscale x 2; set format x '2^{%L}'
set xrange [48:*]
set xlabel 'length L'; set ylabel 'smallest dimension d'
at(name) = rows(sprintf('$1 == "%s"', name), 'dimension_by_length.csv')
set title 'exact ratios: k = 2, ε₁ = 0.1, margin 4'
set key at screen 0.27,0.01 center bottom maxrows 2
set yrange [0:*]
plot at('exact ratios') using 2:3:4:5 with yerrorbars lt 1 title 'measured: median and quartiles', \
     slope * log(x) + intercept with lines lt 11 title sprintf('%.1f ln L %+.0f', slope, intercept)
set title 'random projection: k = 2, ε₁ = 0.1'
set key at screen 0.75,0.01 center bottom maxrows 2 samplen 2 width -2
set logscale y; set yrange [100:*]
plot at('projected eps2 = 1') using 2:3:4:5 with yerrorlines lt 2 title 'measured, ε₂ = 1', \
     at('projected eps2 = 2') using 2:3:4:5 with yerrorlines lt 3 title 'measured, ε₂ = 2', \
     at('proved eps2 = 1') using 2:3 with lines lt 2 dt 4 title 'proved, δ = 0.1, ε₂ = 1', \
     at('proved eps2 = 2') using 2:3 with lines lt 3 dt 4 title 'proved, δ = 0.1, ε₂ = 2'
unset multiplot
