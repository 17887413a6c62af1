package schema_test

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/db"
	"autopost/internal/pg/schema"
	"autopost/internal/pgtest"
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
	require.NoError(t, fs.WalkDir(db.Functions, "functions", func(path string, entry fs.DirEntry, err error) error {
		if name := strings.TrimPrefix(path, "functions/"); err == nil && !entry.IsDir() && name != "install.sql" {
			files[name] = 1
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
	require.ErrorContains(t, err, "db/roles.sql")
}

func TestSeedIsOneTransaction(t *testing.T) {
	db := pgtest.New(t)
	require.Error(t, schema.Seed(t.Context(), db.URL(""), `insert into autopost.workspaces (workspace_id) values ('w'); select 1/0;`))
	require.Equal(t, 0, pgtest.Value[int](db, `select count(*)::int from autopost.workspaces`))
	require.NoError(t, schema.Seed(t.Context(), db.URL(""), `insert into autopost.workspaces (workspace_id) values ('w')`))
	require.Equal(t, 1, pgtest.Value[int](db, `select count(*)::int from autopost.workspaces`))
}
