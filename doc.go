// Package autopost defines the shared types: deliveries, outcomes, errors and the interfaces of
// adapters.
//
// It has no behaviour: the database (db/) decides, Go moves data, and adapters call platforms. The
// package imports only the standard library.
package autopost
