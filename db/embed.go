// Package db carries everything SQL: roles, migrations of tables, replaceable
// functions, grants and the demo seed. It holds no logic; internal/pg applies it.
package db

import "embed"

// Migrations are the forward-only changes of tables, numbered.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// Functions are re-created as a whole whenever one of them changes.
//
//go:embed functions
var Functions embed.FS

// Roles creates the roles of the schema; repeatable.
//
//go:embed roles.sql
var Roles string

// Grants gives each role what it may do, by the catalogue; run after the functions.
//
//go:embed grants.sql
var Grants string

// Seed is the workspace of the demo, and the example for autopost seed.
//
//go:embed seed.sql
var Seed string
