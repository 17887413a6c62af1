package daemon

import (
	"autopost/internal/credential"
	"autopost/internal/ingest/pull"
	"autopost/internal/ingest/pull/externaldb"
	"autopost/internal/ingest/pull/jsonapi"
	"autopost/internal/ingest/pull/rss"
	"autopost/internal/ingest/pull/sqlquery"
	"autopost/internal/outbound"
)

// Fetchers returns the fetchers by pull_sources.kind. Requests with a credential require TLS.
func Fetchers(guard outbound.GuardedConfig, vault *credential.Vault) map[string]pull.Fetcher {
	doer := outbound.Guarded(guard)
	guard.TLS = true
	return map[string]pull.Fetcher{"rss": rss.New(doer), "api": jsonapi.New(doer, outbound.Guarded(guard), vault), "db": sqlquery.New(externaldb.Read, vault)}
}
