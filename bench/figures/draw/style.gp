# What the figures share; width and height are set before. Lines are chosen out of the long tables by awk.
if (format eq 'svg') {
  set terminal svg size width,height font 'sans-serif,11' background 'white'
} else {
  set terminal pngcairo size width,height font 'sans,9' background 'white'
}
set output name.'.'.format
set datafile separator ','
set border 3 lw 0.8
set tics nomirror
set grid lw 0.4 lc rgb '#dddddd'
set bars 0.5
rows(condition, file) = "< awk -F, 'NR > 1 && ".condition."' ".file
set linetype 1 lc rgb '#0072b2' pt 7 ps 0.45 lw 1.4
set linetype 2 lc rgb '#d55e00' pt 5 ps 0.45 lw 1.4
set linetype 3 lc rgb '#009e73' pt 9 ps 0.55 lw 1.4
set linetype 4 lc rgb '#cc79a7' pt 11 ps 0.55 lw 1.4
set linetype 5 lc rgb '#e69f00' pt 13 ps 0.6 lw 1.4
set linetype 6 lc rgb '#56b4e9' pt 4 ps 0.5 lw 1.4
set linetype 7 lc rgb '#882255' pt 6 ps 0.5 lw 1.4
set linetype 8 lc rgb '#117733' pt 8 ps 0.6 lw 1.4
set linetype 9 lc rgb '#999933' pt 10 ps 0.6 lw 1.4
set linetype 10 lc rgb '#333333' pt 12 ps 0.6 lw 1.4
set linetype 11 lc rgb 'black' dt 2 lw 1.2
set linetype cycle 11
