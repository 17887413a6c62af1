package db_test
import ("testing";"github.com/jackc/pgx/v5";"autopost/internal/pgtest";"os")
func TestZZ(t *testing.T){
 script := readScript(t, os.Getenv("ZZ")); db := pgtest.New(t); db.Exec(`create extension pgtap with schema public`)
 conn, _ := pgx.Connect(t.Context(), db.URL("")); lines, err := scriptLines(t.Context(), conn, script)
 for _, l := range lines { if l!="" {t.Log(l)} }; t.Log(err)
}
