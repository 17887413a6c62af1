package credential

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"autopost"
)

// platformTimeout limits one question to a platform. Each target adds a second.
const platformTimeout = 20 * time.Second

// Check asks the platform about a credential (of.WorkspaceID, of.AuthRef, of.Platform) and its rights. failure is nil if
// the platform answered. cause is the error that prevented access to the secret; nil if it was read. A nil checker
// reads the secret only.
func (v *Vault) Check(ctx context.Context, checker autopost.Checker, of autopost.Delivery, targets []string) (info autopost.CredentialInfo, failure *autopost.Error, cause error) {
	secret, cause := v.Credential(ctx, of.WorkspaceID, of.AuthRef, of.Platform)
	if failure = FailureOf(cause); failure != nil || checker == nil {
		return info, failure, cause
	}
	ctx, cancel := context.WithTimeout(ctx, platformTimeout+time.Duration(len(targets))*time.Second)
	defer cancel()
	info, failure = Renewing(ctx, v, of, secret, func(secret autopost.Secret) (autopost.CredentialInfo, *autopost.Error) {
		return checker.Check(ctx, secret, targets)
	})
	return info, failure, nil
}

// AppOf returns client_id and client_secret of an app for linked accounts, from a JSON object that may have more.
func AppOf(platform autopost.Platform, given autopost.Secret) (map[string]string, error) {
	var fields map[string]any
	if json.Unmarshal([]byte(given.Reveal()), &fields) != nil {
		return nil, errors.New(`the app must be a JSON object: write it like {"client_id": "…", "client_secret": "…"}`)
	}
	app := map[string]string{}
	for _, name := range []string{"client_id", "client_secret"} {
		if value, _ := fields[name].(string); value != "" {
			app[name] = value
		}
	}
	if app["client_id"] == "" || platform == autopost.YouTube && app["client_secret"] == "" {
		return nil, errors.New("the app must have client_id and client_secret: copy them from the developer pages of the platform")
	}
	return app, nil
}
