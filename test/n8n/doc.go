// Package n8n tests the workflows of n8n in the folder workflows.
//
// The ordinary tests read the exports: their form, their statements against a real database, and a script of calls
// by psql and Go. With the tag n8n, the tests install nothing but start the n8n that install.sh has put into the
// folder AUTOPOST_N8N. They import and publish every workflow and run it against a private PostgreSQL and the
// simulators.
package n8n
