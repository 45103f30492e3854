width = 1320; height = 500
load scripts.'/style.gp'
set multiplot layout 1,3 margins 0.055,0.985,0.33,0.93 spacing 0.065
set logscale y
set format y '10^{%L}'
set title 'd = 64, n = 128'
set xlabel 'degree n'; set ylabel 'row L1 error of the weights'
set xrange [0.5:16.5]; set yrange [1e-10:10]
set key at screen 0.19,0.01 center bottom maxrows 5 samplen 2
sigmas = '0.25 0.5 1 2'
at(family, sigma) = rows(sprintf('$1 == %s && $2 == "%s"', sigma, family), 'error_by_degree.csv')
plot for [i = 1:4] at('Taylor', word(sigmas, i)) using 3:4:5:6 with yerrorlines lt i title 'Taylor, σ = '.word(sigmas, i), \
     at('Taylor', '1') using 3:8 with lines lt 10 dt 2 lw 0.8 title 'uniform, each σ', \
     for [i = 1:4] at('exponential limit', word(sigmas, i)) using 3:4:5:6 with yerrorlines lt i dt 4 title 'limit, σ = '.word(sigmas, i), \
     for [i = 1:4] at('Taylor', word(sigmas, i)) using 3:8 with lines lt i dt 2 lw 0.8 notitle
set title 'what a degree costs'
set ylabel 'features m'
set xrange [0.5:8.5]; set yrange [10:1e12]
set key at screen 0.52,0.01 center bottom maxrows 3 samplen 2
at2(d) = rows(sprintf('$1 == %d', d), 'dimensions.csv')
plot at2(16) using 2:3 with linespoints lt 1 title 'C(d+n, n), d = 16', at2(16) using 2:4 with lines lt 1 dt 4 title 'Σ d^i, d = 16', \
     1024 with lines lt 11 title 'm = 1024', \
     at2(64) using 2:3 with linespoints lt 2 title 'C(d+n, n), d = 64', at2(64) using 2:4 with lines lt 2 dt 4 title 'Σ d^i, d = 64'
set title 'Taylor and random features (antithetic, fixed radii), d = 16'
set logscale x
set xlabel 'features m'; set ylabel 'row L1 error of the weights'
set xrange [14:*]; set yrange [1e-4:10]
set key at screen 0.85,0.01 center bottom maxrows 4 samplen 2
at3(map, sigma) = rows(sprintf('$1 == %s && $2 == "%s"', sigma, map), 'polynomials_and_random_features.csv')
sigmas = '0.5 1 2'
plot for [i = 1:3] at3('Taylor', word(sigmas, i)) using 3:4:5:6 with yerrorlines lt i title 'Taylor, σ = '.word(sigmas, i), \
     at3('uniform', '1') using 3:4 with lines lt 10 dt 2 lw 0.8 title 'uniform, each σ', \
     for [i = 1:3] at3('antithetic fixed', word(sigmas, i)) using 3:4:5:6 with yerrorlines lt i dt 4 title 'random, σ = '.word(sigmas, i), \
     for [i = 1:3] at3('uniform', word(sigmas, i)) using 3:4 with lines lt i dt 2 lw 0.8 notitle
unset multiplot
