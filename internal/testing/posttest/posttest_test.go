package posttest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/posttest"
)

func TestDeliveryReachesItsStatus(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	posttest.Workspace(db, "w")
	for _, status := range []autopost.Status{
		autopost.StatusQueued, autopost.StatusSending, autopost.StatusSent, autopost.StatusRetry, autopost.StatusFailedPermanent, autopost.StatusDead,
	} {
		posttest.Channel(db, "w", string(status))
		id := posttest.Delivery(db, "w", string(status), status)
		require.Equal(t, string(status), pgtest.Value[string](db, `select status from autopost.deliveries where delivery_id = $1::uuid`, id))
	}
	require.Panics(t, func() {
		posttest.Channel(db, "w", "other")
		posttest.Delivery(db, "w", "other", autopost.StatusDeduped)
	})
}

func TestChannelOptions(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	posttest.Workspace(db, "w")
	posttest.Channel(db, "w", "plain")
	posttest.Channel(db, "w", "set", posttest.Platform(autopost.MAX), posttest.Group("g"), posttest.Rate(0.5), posttest.MaxParallel(4))
	require.Equal(t, []string{"telegram bot null 1", "max g 0.5 4"}, pgtest.Column[string](db, `
		select concat_ws(' ', platform, rate_group, coalesce(rate_rps::text, 'null'), max_parallel) from autopost.channels order by channel_id`))
	require.EqualValues(t, 2, posttest.Post(db, "w", "x")["enqueued"])
}
