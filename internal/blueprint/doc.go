// Package blueprint is the configuration of workspaces as people write it: in a
// YAML file (Read, Write), in a table (ReadTable), or field by field (Value). It
// knows how things are called and where they stand in a file; what is right is
// decided where it is applied.
package blueprint
