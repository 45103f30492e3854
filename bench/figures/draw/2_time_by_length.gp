width = 1000; height = 480
load scripts.'/style.gp'
maps = '"softmax" "elu + 1" "Performer m = 64" "Performer m = 256" "Performer m = 1024" "trigonometric m = 256" "Taylor n = 2 (m = 2145)"'
set multiplot layout 1,2 margins 0.08,0.98,0.30,0.92 spacing 0.06
set logscale xy; set logscale x 2
set format x '2^{%L}'; set format y '10^{%L}'
set xlabel 'tokens n'
set arrow 1 from 5000, graph 0 to 5000, graph 1 nohead dt 3 lc rgb '#777777'
set label 1 'n = 5000' at 5000, graph 0.04 right offset -0.5,0 tc rgb '#777777'
do for [causal = 0:1] {
  set title (causal ? 'causal' : 'full').', d = d_v = 64, float'
  if (causal) { unset key; unset ylabel } else { set key at screen 0.5,0.01 center bottom maxrows 3; set ylabel 'CPU seconds a call, one core' }
  at(map) = rows(sprintf('$1 == %d && $2 == "%s"', causal, map), 'time_by_length.csv')
  plot for [i = 1:words(maps)] at(word(maps, i)) using 3:4 with linespoints lt i title word(maps, i), \
       rows(sprintf('$1 == %d', causal), 'crossovers.csv') using 3:4 with points pt 6 ps 1.6 lc rgb 'black' lw 1.4 \
         title 'overtakes softmax'
}
unset multiplot
