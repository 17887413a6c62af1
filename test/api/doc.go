// Package api tests rules that hold for every route of the API: required roles, isolation of workspaces, records of
// writes. The tests read the routes from the OpenAPI document of the daemon, so they include new routes.
package api
