package twitter

import (
	"context"
	"strings"

	"autopost"
	"autopost/internal/adapter"
)

// Check implements autopost.Checker. A credential belongs to one account and posts only as that one.
func (a *Adapter) Check(ctx context.Context, secret autopost.Secret, targets []string) (autopost.CredentialInfo, *autopost.Error) {
	signer, secrets, failure := readCredential(secret)
	if failure != nil {
		return autopost.CredentialInfo{}, failure
	}
	s := &sender{adapter: a, call: autopost.Call{Secret: secret}, signer: signer, hide: adapter.Hide(secrets...)}
	is, failure := s.me(ctx)
	if failure != nil {
		return autopost.CredentialInfo{}, failure
	}
	standing := autopost.CredentialInfo{Account: "@" + is.Username, Rights: make([]autopost.Right, 0, len(targets))}
	for _, target := range targets {
		right := autopost.Right{Target: target}
		switch {
		case !account.MatchString(target):
			right.Reason = "the target must be the id or the name of an account: correct it"
		case target != is.ID && !strings.EqualFold(strings.TrimPrefix(target, "@"), is.Username):
			right.Reason = "the credential belongs to @" + is.Username + ", id " + is.ID + ": correct the target, or link the other account"
		default:
			right.MayPost, right.Title = true, is.Name
		}
		standing.Rights = append(standing.Rights, right)
	}
	return standing, nil
}

// user is an account in X's answers.
type user struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Username string `json:"username"`
}

// me returns the account of the credential.
func (s *sender) me(ctx context.Context) (user, *autopost.Error) {
	var got struct {
		Data user `json:"data"`
	}
	if failure := s.get(ctx, "2/users/me", nil, &got); failure != nil {
		return user{}, failure
	}
	if got.Data.ID == "" {
		return user{}, invalid("the answer of X has no account id")
	}
	return got.Data, nil
}

var _ autopost.Checker = (*Adapter)(nil)
