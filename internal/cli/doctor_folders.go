package cli

import (
	"context"
	"fmt"
	"os"

	"autopost/internal/pg"
)

// diagnoseFolders checks that this machine sees the folders of file jobs. Another machine may have them, so a missing
// one is a warning.
func diagnoseFolders(ctx context.Context, store *pg.Store) ([]pg.Check, error) {
	sources, err := store.ListFileSources(ctx)
	if err != nil {
		return nil, err
	}
	var checks []pg.Check
	for _, source := range sources {
		check := pg.Check{Name: "folder of " + source.WorkspaceID + "/" + source.SourceID, OK: true, Found: source.Root}
		if _, err := os.ReadDir(source.Root); err != nil {
			check.Found = fmt.Sprintf("%s cannot be read here", source.Root)
			check.Remedy = "run autopost serve on the machine that has the folder, or correct root: autopost source set " + source.SourceID + " --workspace " + source.WorkspaceID
		}
		checks = append(checks, check)
	}
	return checks, nil
}
