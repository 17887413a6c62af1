// Package webhook sends posts to any address that takes webhooks signed as Standard
// Webhooks (https://www.standardwebhooks.com) asks: the platform of those who have none.
// What a receiver gets and may answer is told in docs/webhook.md.
//
// It is also the adapter to read first: docs/extend/adapter.md goes through it line by line.
package webhook
