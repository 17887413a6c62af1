package web

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"autopost/internal/configfile"
	"autopost/internal/problem"
)

// resource is a kind of configuration that has pages: a list, and a page with a form for each row.
type resource struct {
	// section is the path of its pages, and the beginning of its words.
	section string
	// path is the path of its operations.
	path string
	// id is the name of the field with the id.
	id   string
	kind configfile.Resource
	// fields are those of the form; nil means all.
	fields []string
	// first are the fields that a form shows at once; it folds the others. nil shows all.
	first []string
	// changes is the role that a change needs; operator by default.
	changes string
	// noAdd means that people do not create rows by hand.
	noAdd bool
	// home is the page that lists the rows, if it is not the section.
	home string
	// state returns the state of a row, as states names it.
	state func(v *view, r row) string
	// sub describes a row in one line, why explains its state.
	sub, why func(v *view, r row) string
	// acts are the acts on a row. Each has a question.
	acts func(v *view, r row) []string
	// read sets what the page of a row shows beside its form, or beside the form of a new row.
	read func(v *view, d *rowData) error
	// extra shows it.
	extra func(v *view, d rowData) templ.Component
}

// configChange is a changed field.
type configChange struct{ Name, Label, Before, After string }

// rowList is a list of rows.
type rowList struct {
	Of    *resource
	Rows  []row
	Next  string
	Fault string
}

// rowData is the content of the page of a row.
type rowData struct {
	Of   *resource
	Row  row
	ID   string
	Form *form
	Ask  *question
	// Once is a secret that is shown once.
	Once string
	// Extra is what the resource adds.
	Extra any
}

// mostRows is how many rows a page lists.
const mostRows = "100"

func (o *resource) address(id string) string { return o.section + "/" + url.PathEscape(id) }

func (o *resource) operation(id string) string {
	if o.path == "/groups" {
		platform, group, _ := strings.Cut(id, "/")
		return o.path + "/" + url.PathEscape(platform) + "/" + url.PathEscape(group)
	}
	return o.path + "/" + url.PathEscape(id)
}

func (o *resource) word() string {
	return strings.TrimPrefix(strings.TrimPrefix(o.section, "/setup"), "/")
}

func (o *resource) list() string { return cmp.Or(o.home, o.section) }

func (o *resource) mayChange(v *view) bool { return v.may(cmp.Or(o.changes, "operator")) }

// name returns how a row is called.
func (o *resource) name(r row) string {
	if title := r.text("title"); title != "" && o.path == "/channels" {
		return title
	}
	return r.text(o.id)
}

// rows reads a page of the list.
func (v *view) rows(o *resource) (rowList, error) {
	list := rowList{Of: o}
	var got page[row]
	target := url.Values{"limit": {mostRows}}
	if cursor := v.r.URL.Query().Get("cursor"); cursor != "" {
		target.Set("cursor", cursor)
	}
	if err := v.get(o.path+"?"+target.Encode(), &got); err != nil {
		return list, err
	}
	list.Rows, list.Next = got.Items, text(got.NextCursor)
	slices.SortStableFunc(list.Rows, func(a, b row) int { return cmp.Compare(rank(o.state(v, a)), rank(o.state(v, b))) })
	return list, nil
}

// rowRoutes registers the pages of a resource.
func (s *server) rowRoutes(mux *http.ServeMux, o *resource) {
	if o.section != "/channels" { // it has a list of its own
		mux.HandleFunc("GET "+o.section, s.signed(func(v *view) { v.showRows(o) }))
	}
	mux.HandleFunc("POST "+o.section, s.signed(func(v *view) { v.putRow(o, "") }))
	mux.HandleFunc("GET "+o.section+"/{id}", s.signed(func(v *view) { v.showRow(o) }))
	mux.HandleFunc("POST "+o.section+"/{id}/{act}", s.signed(func(v *view) {
		if act := v.r.PathValue("act"); act == "set" {
			v.putRow(o, v.r.PathValue("id"))
		} else {
			v.actOnRow(o, v.r.PathValue("id"), act)
		}
	}))
}

func (v *view) showRows(o *resource) {
	if v.r.URL.Query().Has("add") && o.mayChange(v) && !o.noAdd {
		d := rowData{Of: o, Form: v.newForm(o, nil)}
		d.Form.start(v.r.URL.Query())
		v.renderRow(http.StatusOK, d)
		return
	}
	list, err := v.rows(o)
	if err != nil {
		v.fail(err)
		return
	}
	if v.r.Header.Get("HX-Target") == "rows" {
		v.render(http.StatusOK, rowTable(v, list))
		return
	}
	v.render(http.StatusOK, rowsPage(v, list))
}

// start takes values for a new row from an address.
func (f *form) start(given url.Values) {
	if f.NewID {
		f.ID = given.Get("id")
	}
	for _, field := range f.Fields {
		if given.Has(field.Name) {
			field.Value = given.Get(field.Name)
		}
	}
}

// newForm returns a form for a row, or for a new one.
func (v *view) newForm(o *resource, r row) *form {
	f := &form{Action: o.section, Back: o.list(), NewID: r == nil, Version: r.text("updated_at"), Fields: v.fieldsOf(o.kind, o.fields, r), Lists: map[string][]choice{}}
	f.Button, f.IDHint = v.t("setup.add"), v.or("hint."+o.word()+".id", v.t("hint.id"))
	if r != nil {
		f.Action, f.Button = o.address(r.text(o.id))+"/set", v.t("save")
	}
	for _, field := range f.Fields {
		if list := field.Rule.From; list != "" && f.Lists[list] == nil && !field.Fixed {
			f.Lists[list] = v.suggestions(list)
		}
	}
	return f
}

// suggestions returns the values of a list of the API; none if it cannot be read.
func (v *view) suggestions(list string) []choice {
	all := []choice{}
	if list == "zones" {
		for _, zone := range zones {
			all = append(all, choice{zone, zone})
		}
		return all
	}
	ids := map[string]string{"credentials": "auth_ref", "channels": "channel_id", "templates": "template_id", "chats": "target_id", "groups": "rate_group", "sources": "source_id"}
	words := map[string]string{"credentials": "platform", "channels": "title", "chats": "title", "groups": "platform"}
	var got page[row]
	if err := v.get("/"+list+"?limit=500", &got); err != nil {
		return all
	}
	for _, r := range got.Items {
		one := choice{r.text(ids[list]), r.text(words[list])}
		if one.Value != "" && !slices.ContainsFunc(all, func(c choice) bool { return c.Value == one.Value }) {
			all = append(all, one)
		}
	}
	return all
}

// zones are suggestions. Any name of the time zone database is accepted.
var zones = []string{"UTC", "Europe/Moscow", "Europe/Kaliningrad", "Europe/Samara", "Asia/Yekaterinburg", "Asia/Omsk", "Asia/Novosibirsk", "Asia/Krasnoyarsk", "Asia/Irkutsk",
	"Asia/Yakutsk", "Asia/Vladivostok", "Asia/Magadan", "Asia/Kamchatka", "Europe/Minsk", "Asia/Almaty", "Asia/Tashkent", "Europe/London", "Europe/Berlin", "America/New_York", "America/Los_Angeles"}

// readRow reads a row and its page.
func (v *view) readRow(o *resource, id string) (rowData, error) {
	d := rowData{Of: o, ID: id}
	var err error
	if d.Row, err = v.oneRow(o, id); err != nil {
		return d, err
	}
	if o.mayChange(v) {
		d.Form = v.newForm(o, d.Row)
	}
	return d, nil
}

// oneRow reads a row. Event types have only a list.
func (v *view) oneRow(o *resource, id string) (r row, err error) {
	if o.path != "/event-types" {
		return r, v.get(o.operation(id), &r)
	}
	var all page[row]
	if err := v.get(o.path, &all); err != nil {
		return nil, err
	}
	at := slices.IndexFunc(all.Items, func(r row) bool { return r.text(o.id) == id })
	if at < 0 {
		return nil, problem.NotFound.Says("%s", v.t("error.title.not-found"))
	}
	return all.Items[at], nil
}

func (v *view) showRow(o *resource) {
	d, err := v.readRow(o, v.r.PathValue("id"))
	if err == nil {
		d.Ask, err = v.askRow(d)
	}
	if err != nil {
		v.fail(err)
		return
	}
	v.renderRow(http.StatusOK, d)
}

func (v *view) renderRow(status int, d rowData) {
	if d.Of.read != nil && d.Extra == nil {
		if err := d.Of.read(v, &d); err != nil {
			v.fail(err)
			return
		}
	}
	v.render(status, rowPage(v, d))
}

// putRow stores the form of a row, or tries it.
func (v *view) putRow(o *resource, id string) {
	d := rowData{Of: o, ID: id}
	if id != "" {
		var err error
		if d, err = v.readRow(o, id); err != nil {
			v.fail(err)
			return
		}
	}
	if !o.mayChange(v) {
		v.fail(problem.NotAllowed.Says("%s", v.t("error.role", v.t("role."+cmp.Or(o.changes, "operator")))))
		return
	}
	d.Form = v.newForm(o, d.Row)
	stored := v.fieldsOf(o.kind, o.fields, d.Row)
	seen := d.Form.Version
	d.Form.read(v.form)
	if id == "" {
		id = d.Form.ID
	}
	switch {
	case id == "":
		d.Form.IDFault = v.t("fault.missing")
	case d.Row == nil && v.exists(o, id):
		d.Form.IDFault = v.t("fault.taken")
	case d.Row != nil && d.Form.Version != seen && !v.form.Has("over"):
		d.Form.Conflict, d.Form.Version = true, seen
		d.Form.compare(stored)
		v.renderRow(http.StatusConflict, d)
		return
	}
	changed, ok := d.Form.changes(v, o.kind, stored, d.Row)
	if !ok || d.Form.IDFault != "" {
		v.renderRow(http.StatusUnprocessableEntity, d)
		return
	}
	if v.form.Has("try") {
		v.tryRow(d)
		return
	}
	v.storeRow(d, id, changed)
}

func (v *view) exists(o *resource, id string) bool {
	_, err := v.oneRow(o, id)
	return err == nil
}

// storeRow calls the operation and shows its answer.
func (v *view) storeRow(d rowData, id string, changed map[string]any) {
	o := d.Of
	target, dry := o.operation(id), v.form.Has("dry")
	if dry {
		target += "?dry_run=true"
	}
	secret := ""
	if o.path == "/endpoints" && d.Row == nil && changed["kind"] == "webhook_push" && changed["signing_ref"] == nil {
		secret = Token()
		changed["secret_hash"] = TokenHash(secret)
	}
	changed["reason"] = cmp.Or(d.Form.Reason, v.t("reason.setup"))
	var answer dryAnswer
	if err := v.call(http.MethodPatch, target, changed, &answer); err != nil {
		status, shown := d.Form.refuse(v, err)
		if !shown {
			v.fail(err)
			return
		}
		v.renderRow(status, d)
		return
	}
	if dry {
		d.Form.Checked, d.Form.Changes, d.Form.Note = true, v.changesOf(o.kind, answer), answer.Note
		v.renderRow(http.StatusOK, d)
		return
	}
	if secret != "" {
		fresh, err := v.readRow(o, id)
		if err != nil {
			v.fail(err)
			return
		}
		fresh.Once = secret
		v.renderRow(http.StatusOK, fresh)
		return
	}
	if answer.Reason == "unchanged" {
		v.done(o.address(id), "same")
		return
	}
	v.done(o.address(id), "saved")
}

// dryAnswer is the answer to a change, also of a dry run.
type dryAnswer struct {
	Applied    bool                         `json:"applied"`
	Reason     string                       `json:"reason"`
	Note       string                       `json:"note"`
	Before     row                          `json:"before"`
	After      row                          `json:"after"`
	Waiting    int                          `json:"waiting"`
	Sending    int                          `json:"sending"`
	Queued     int                          `json:"queued"`
	Channels   []struct{ ChannelID string } `json:"channels"`
	EndpointID string                       `json:"endpoint_id"`
}

// changesOf returns the changed fields in words.
func (v *view) changesOf(kind configfile.Resource, a dryAnswer) []configChange {
	var all []configChange
	names := slices.Sorted(maps.Keys(a.After))
	for name := range a.Before {
		if _, both := a.After[name]; !both {
			names = append(names, name)
		}
	}
	for _, name := range names {
		all = append(all, configChange{name, v.or("field."+kind.Name+"."+name, v.or("field."+name, name)), a.Before.text(name), a.After.text(name)})
	}
	return all
}
