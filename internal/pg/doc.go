// Package pg is the only one that talks to PostgreSQL: one Go method per SQL
// function, with its name. A method is one bare call outside any transaction, and
// decides nothing; what an answer means is the caller's business.
//
// It also brings a database up to date (Migrate) and hears its bell (Listen).
package pg
