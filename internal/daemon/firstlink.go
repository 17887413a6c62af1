package daemon

import (
	"cmp"
	"context"

	"autopost/internal/web"
)

// FirstLink returns the address by which the first person creates an account; "" if there are people, or if this
// daemon serves no pages.
func (d *Daemon) FirstLink(ctx context.Context) (string, error) {
	if !d.pages {
		return "", nil
	}
	token := web.Token()
	begun, err := d.store.BeginFirstLink(ctx, web.TokenHash(token))
	if err != nil || !begun {
		return "", err
	}
	return cmp.Or(d.cfg.PublicURL, "http://"+d.Addr()) + "/invite/" + token, nil
}
