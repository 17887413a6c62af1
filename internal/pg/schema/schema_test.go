package schema_test

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/db"
	"autopost/internal/pg/schema"
	"autopost/internal/testing/pgtest"
)

func TestInstallListsEveryFunctionFileOnce(t *testing.T) {
	story, err := fs.ReadFile(db.Functions, "functions/install.sql")
	require.NoError(t, err)
	listed := map[string]int{}
	for line := range strings.Lines(string(story)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), `\ir `); ok {
			listed[path]++
		}
	}
	files := map[string]int{}
	require.NoError(t, fs.WalkDir(db.Functions, ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && path != "functions/install.sql" {
			if name, ok := strings.CutPrefix(path, "functions/"); ok {
				path = name
			} else {
				path = "../" + path
			}
			files[path] = 1
		}
		return err
	}))
	require.Equal(t, files, listed)
}

func TestMigrateIsRepeatableAndReportsItsState(t *testing.T) {
	db := pgtest.New(t)
	before := pgtest.Value[string](db, `select digest from autopost.installed_functions`)
	require.NoError(t, schema.Migrate(t.Context(), db.URL("")))
	require.Equal(t, before, pgtest.Value[string](db, `select digest from autopost.installed_functions`))
	list, err := schema.Status(t.Context(), db.URL(""))
	require.NoError(t, err)
	require.NotEmpty(t, list)
	for _, m := range list {
		require.True(t, m.Applied, m.Name)
	}
}

func TestStatusOfADatabaseThatWasNeverMigrated(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(`drop schema autopost cascade`)
	list, err := schema.Status(t.Context(), db.URL(""))
	require.NoError(t, err)
	require.NotEmpty(t, list)
	for _, m := range list {
		require.False(t, m.Applied, m.Name)
	}
}

func TestMigrateInstallsFunctionsThatDiffer(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(`update autopost.installed_functions set digest = 'older'`)
	db.Exec(`create or replace function autopost.hash_version() returns int language sql immutable as 'select 99'`)
	require.NoError(t, schema.Migrate(t.Context(), db.URL("")))
	require.Equal(t, 1, pgtest.Value[int](db, `select autopost.hash_version()`))
}

func TestMigrateAsAMemberOfTheOwnerWithoutSuperuser(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(`update autopost.installed_functions set digest = 'older'`)
	require.NoError(t, schema.Migrate(t.Context(), db.URL("owner")))
}

func TestMigrateSaysWhatToTypeWhenItMayNot(t *testing.T) {
	db := pgtest.New(t)
	err := schema.Migrate(t.Context(), db.URL("caller"))
	require.ErrorContains(t, err, "autopost migrate --print-roles")
	require.ErrorContains(t, err, "grant autopost_owner to \"")
}

// TestMigrateRefusesAnUnreleasedVersion gives the database a migration from before the
// baseline. Migrate and Status refuse it in one line and change nothing.
func TestMigrateRefusesAnUnreleasedVersion(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(`insert into autopost.workspaces (workspace_id) values ('w')`)
	db.Exec(`update autopost.installed_functions set digest = 'older'`)
	db.Exec(`insert into autopost.schema_migrations (version_id, is_applied) values (54, true)`)
	for _, url := range []string{db.URL(""), db.URL("owner")} {
		err := schema.Migrate(t.Context(), url)
		require.ErrorIs(t, err, schema.ErrUnreleased)
		require.NotContains(t, err.Error(), "\n")
		require.ErrorContains(t, err, "start with a new database")
	}
	_, err := schema.Status(t.Context(), db.URL(""))
	require.ErrorIs(t, err, schema.ErrUnreleased)
	require.Equal(t, 1, pgtest.Value[int](db, `select count(*)::int from autopost.workspaces`))
	require.Equal(t, "older", pgtest.Value[string](db, `select digest from autopost.installed_functions`))
}

func TestSeedIsOneTransaction(t *testing.T) {
	db := pgtest.New(t)
	require.Error(t, schema.Seed(t.Context(), db.URL(""), `insert into autopost.workspaces (workspace_id) values ('w'); select 1/0;`))
	require.Equal(t, 0, pgtest.Value[int](db, `select count(*)::int from autopost.workspaces`))
	require.NoError(t, schema.Seed(t.Context(), db.URL(""), `insert into autopost.workspaces (workspace_id) values ('w')`))
	require.Equal(t, 1, pgtest.Value[int](db, `select count(*)::int from autopost.workspaces`))
}
