// Package ingest is stage 1: what comes in, shaped into the raw payload and
// handed to the database, which decides everything about it.
//
// This package holds the worker that finishes submissions: posts that were
// accepted before their media were fetched. The doors themselves are its
// subpackages: push, and pull with one package a kind of source.
package ingest
