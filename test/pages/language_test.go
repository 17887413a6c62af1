package pages

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

var (
	heading3  = regexp.MustCompile(`<h3 lang="([a-z]+)">([^<]*)</h3>`)
	remedy    = regexp.MustCompile(`<p class="small soft" lang="([a-z]+)">([^<]*)</p>`)
	inRussian = regexp.MustCompile(`[А-Яа-я]{3}`)
	unfilled  = regexp.MustCompile(`\{[a-z]+\}|%[a-z!]`)
)

// Each kind of alert has a sentence and a remedy in Russian. What is known in English only stands below.
func TestAlertsAreInTheLanguageOfThePerson(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	s.Exec(`delete from autopost.alerts`)
	s.Exec(`select autopost.raise_alert('news', k.kind, 'thing:bot', '{"message": "the answer of a platform"}', '{"code": "tg_x"}') from autopost.alert_kinds() k`)
	s.Exec(`update autopost.alerts set amount = 180 where subject = 'thing:bot'`)
	kinds := pgtest.Value[int](s.DB, `select count(*)::int from autopost.alert_kinds()`)

	english := p.get("/operations/alerts").body
	require.GreaterOrEqual(t, len(heading3.FindAllString(english, -1)), kinds, "the monitor may have raised others")
	require.NotContains(t, english, `<h3 lang="ru">`)
	require.Contains(t, english, "thing:bot: deliveries are dead: the answer of a platform")

	p.cookies["autopost-language"] = "ru"
	page := p.get("/operations/alerts").body
	said, remedies := heading3.FindAllStringSubmatch(page, -1), 0
	require.GreaterOrEqual(t, len(said), kinds)
	for _, m := range said {
		require.Equal(t, "ru", m[1], m[2])
		require.Regexp(t, inRussian, m[2])
		require.NotRegexp(t, unfilled, m[2])
	}
	for _, m := range remedy.FindAllStringSubmatch(page[strings.Index(page, `id="alerts"`):], -1) {
		require.Equal(t, "ru", m[1], m[2])
		require.Regexp(t, inRussian, m[2])
		require.NotRegexp(t, unfilled, m[2])
		remedies++
	}
	require.Equal(t, len(said), remedies)
	for _, part := range []string{
		"180 доставок кончились без отправки", "У учётных данных «bot» нет секрета: посты ждут в 180 каналах", "Вебхук bot не принимает запросы 3 минуты",
		"autopost channel check bot --workspace news", "--code tg_x", "the answer of a platform",
	} {
		require.True(t, strings.Contains(page, part), part)
	}
	require.NotRegexp(t, `(?s)180 каналов стоят на паузе[^<]*</h3><p class="small soft break"`, page, "the sentence has all")

	for _, path := range []string{"/", "/posts"} {
		page := p.get(path).body
		require.Contains(t, page, `<b lang="ru">Платформа не принимает учётные данные «bot»: их каналы стоят на паузе</b>`, path)
		require.Contains(t, page, `<p class="small break" lang="en">thing:bot: the platform refuses the credential`, path)
	}
	require.Contains(t, p.get("/").body, `<h3 lang="ru">`)
	require.NotContains(t, p.get("/").body, `<h3 lang="en">`)
}

// Each setting that a person sees is described in Russian.
func TestSettingsAreInTheLanguageOfThePerson(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	p.cookies["autopost-language"] = "ru"
	page := p.get("/setup/settings").body
	described := map[string]string{}
	for _, m := range regexp.MustCompile(`(?s)<li id="s-([a-z0-9_]+)">.*?<p class="small soft" lang="([a-z]+)">([^<]*)</p>`).FindAllStringSubmatch(page, -1) {
		require.Equal(t, "ru", m[2], m[1])
		require.Regexp(t, inRussian, m[3], m[1])
		described[m[1]] = m[3]
	}
	require.Len(t, described, pgtest.Value[int](s.DB, `select count(*)::int from autopost.all_settings() where not internal`))
	p.cookies["autopost-language"] = "en"
	require.Contains(t, p.get("/setup/settings").body, fmt.Sprintf(`lang="en">%s`, "Calls of a delivery before it is dead"))
}
