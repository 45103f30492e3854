width = 1320; height = 440
load scripts.'/style.gp'
maps = '"softmax" "Performer m = 16" "Performer m = 64" "Performer m = 256" "elu + 1" "Taylor n = 2"'
set multiplot layout 1,3 margins 0.055,0.985,0.24,0.92 spacing 0.06
set logscale xy 2
set format xy '2^{%L}'
set xrange [12:*]; set yrange [8:*]
set xlabel 'tokens n'; set ylabel 'numerical rank of the weights'
do for [causal = 0:1] {
  set title (causal ? 'causal' : 'full').', d = 16, σ = 1'
  at(map) = rows(sprintf('$1 == %d && $2 == "%s"', causal, map), 'rank_by_length.csv')
  if (causal) { unset key } else { set key at screen 0.5,0.01 center bottom maxrows 1 }
  plot for [i = 1:words(maps)] at(word(maps, i)) using 3:4 with linespoints lt i title word(maps, i)
}
set title 'spectra, full, n = 512'
unset logscale x; set xrange [0:540]; set format x '%g'; set logscale y 10; set format y '10^{%L}'
set xlabel 'index i'; set ylabel 's_i / s_1'
set yrange [1e-17:2]
at(map) = rows(sprintf('$1 == 0 && $2 == "%s"', map), 'spectra.csv')
plot for [i = 1:words(maps)] at(word(maps, i)) using 3:4 with lines lt i notitle
unset multiplot
