// Package webhook sends posts to any address that accepts webhooks signed as Standard Webhooks
// (https://www.standardwebhooks.com). docs/webhook.md describes requests and answers.
//
// Read this adapter first: docs/extend/adapter.md explains it line by line.
package webhook
