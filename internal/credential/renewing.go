package credential

import (
	"context"
	"errors"

	"autopost"
)

// Renewing calls the platform. If the platform rejects a renewable token, it renews the token and calls
// once more.
func Renewing[Answer any](
	ctx context.Context, vault *Vault, of autopost.Delivery, secret autopost.Secret, ask func(autopost.Secret) (Answer, *autopost.Error),
) (Answer, *autopost.Error) {
	answer, failure := ask(secret)
	if failure == nil || failure.Category != autopost.Permanent || failure.Scope != autopost.ScopeChannel {
		return answer, failure
	}
	renewed, err := vault.Renew(ctx, of, secret, *failure)
	switch {
	case err != nil:
		return answer, FailureOf(err)
	case renewed.IsZero():
		return answer, failure
	}
	return ask(renewed)
}

// FailureOf converts an error of a Vault to the failure of a delivery; nil for nil.
func FailureOf(err error) *autopost.Error {
	if err == nil {
		return nil
	}
	if refused, ok := errors.AsType[*autopost.RenewalError](err); ok {
		return &refused.Failure
	}
	return &autopost.Error{
		Category: autopost.Permanent, Scope: autopost.ScopeChannel, Code: autopost.CodeCredentialMissing, Known: true, Message: err.Error(),
	}
}
