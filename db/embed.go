// Package db embeds all SQL: roles, migrations of tables, replaceable views and functions,
// grants and the demo seed. Package internal/pg/schema applies it.
package db

import "embed"

// Migrations are the numbered, forward-only changes of tables.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// Functions holds the folders functions and views. Migrate installs all of them again if
// one changes, in the order of functions/install.sql.
//
//go:embed functions views
var Functions embed.FS

// Roles creates the roles and the schema. It is repeatable.
//
//go:embed roles.sql
var Roles string

// Grants gives each role its rights. It runs after the functions.
//
//go:embed grants.sql
var Grants string

// Distribute brings the schema onto a Citus cluster. It runs there after the grants.
//
//go:embed distribute.sql
var Distribute string

// Seed is the workspace of the demo and the example for autopost seed.
//
//go:embed seed.sql
var Seed string
