#!/bin/sh
# Draws the tables in FOLDER as SVG and PNG:  sh draw.sh FOLDER
set -eu
folder=$1
scripts=$(cd "$(dirname "$0")/draw" && pwd)
for script in "$scripts"/[0-9]*.gp; do
  for format in svg png; do
    (cd "$folder" && gnuplot -e "scripts='$scripts'; name='$(basename "$script" .gp)'; format='$format'" "$script")
  done
done
