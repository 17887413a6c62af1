// Package configfile reads and writes the configuration of workspaces: as a YAML file
// (Read, Write), as a CSV table (ReadTable), or as single fields (Value). It knows the
// names of resources and fields and their places in a file. The database checks the values
// when they are applied.
package configfile
