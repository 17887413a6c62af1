// Package readme types the commands of README.md.
package readme
