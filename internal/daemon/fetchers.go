package daemon

import (
	"autopost/internal/credential"
	"autopost/internal/ingest/pull"
	"autopost/internal/ingest/pull/externaldb"
	"autopost/internal/ingest/pull/httpfetch"
	"autopost/internal/ingest/pull/jsonapi"
	"autopost/internal/ingest/pull/rss"
	"autopost/internal/ingest/pull/sqlquery"
)

// Fetchers returns the fetchers by pull_sources.kind.
func Fetchers(doer httpfetch.Doer, vault *credential.Vault) map[string]pull.Fetcher {
	return map[string]pull.Fetcher{"rss": rss.New(doer), "api": jsonapi.New(doer, vault), "db": sqlquery.New(externaldb.Read, vault)}
}
