// Package ingest is the first stage: it takes posts in and gives them to the database, which decides everything about
// them.
//
// This package has two workers. Worker fetches the media of submissions: posts that were accepted before their media
// were fetched. FanoutWorker creates the deliveries of posts for very many channels. The subpackages push, botupdates
// and pull are the entry points.
package ingest
