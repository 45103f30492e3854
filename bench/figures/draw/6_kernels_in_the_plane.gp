width = 1100; height = 420
load scripts.'/style.gp'
set multiplot layout 1,3 margins 0.06,0.98,0.14,0.90 spacing 0.06
set border 15
set contour base; set view map; unset surface; unset key
set size ratio -1
set xrange [-3:3]; set yrange [-3:3]
set xlabel 'x_1'; set ylabel 'x_2' offset -1
set cntrparam cubicspline
set label 1 'x_0' at 1.5,1 point pt 7 ps 0.8 lc rgb '#d55e00' offset 0.6,0.4 tc rgb '#d55e00' front
titles = '"Gaussian: exp(-|x_0 - x|^2/2)" "exponential: exp(x_0 · x)" "cosine: cos(x_0, x)"'
set cntrlabel onecolor start 20 interval 10000 font ',8'
do for [kernel = 1:3] {
  set title word(titles, kernel)
  if (kernel == 1) { set cntrparam levels discrete 0.01, 0.1, 0.3, 0.6, 0.9 }
  if (kernel == 2) { set cntrparam levels discrete 0.1, 0.3, 1, 3, 10, 30, 100 }
  if (kernel == 3) { set cntrparam levels discrete -0.9, -0.6, -0.3, 0, 0.3, 0.6, 0.9 }
  splot 'kernels_in_the_plane.csv' skip 1 using 1:2:2 + kernel with lines lc rgb '#0072b2' lw 1.2, '' skip 1 using 1:2:2 + kernel with labels
}
unset multiplot
