package web

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"autopost"
	"autopost/internal/configfile"
	"autopost/internal/problem"
)

// choice is a value of a list.
type choice struct{ Value, Word string }

// formField is a field of a form, made from the rule of a field of the configuration.
type formField struct {
	// Name is the name of the input: the field, or the field and a key ("settings.long_text").
	Name, Label, Hint, Value string
	Rule                     configfile.Rule
	Type                     configfile.FieldType
	// Choices are all allowed values; nil for a text.
	Choices []choice
	// Fixed shows the value without an input.
	Fixed bool
	// Rest means the keys of an object that have no field of their own.
	Rest bool
	// Fault is what is wrong, Detail the words of the API.
	Fault, Detail string
	// Now is the value that another person stored meanwhile.
	Now string
}

// column is the field of the configuration that the field belongs to.
func (f *formField) column() string {
	column, _, _ := strings.Cut(f.Name, ".")
	return column
}

// key is the key of an object; "" for a whole field.
func (f *formField) key() string {
	_, key, _ := strings.Cut(f.Name, ".")
	return key
}

// form is a form for a row of the configuration.
type form struct {
	Action, Back, Button string
	// NewID asks for the id of a new row.
	NewID  bool
	ID     string
	IDHint string
	Fields []*formField
	// Lists are suggestions for fields by the name of their list.
	Lists map[string][]choice
	// Version is the last change of the row that the person saw.
	Version, Reason string
	Fault, Detail   string
	IDFault         string
	// Changes is what a dry run found; Checked means that there was one.
	Changes  []configChange
	Checked  bool
	Conflict bool
	Note     string
	// Test adds a button that tries the row before it is stored.
	Test bool
}

// row is a row of the configuration as the API gives it.
type row map[string]any

func (r row) text(name string) string {
	switch value := r[name].(type) {
	case nil:
		return ""
	case string:
		return value
	default:
		raw, _ := json.Marshal(value) // decoded JSON can be encoded
		return string(raw)
	}
}

func (r row) is(name string) bool { return r[name] == true }

func (r row) number(name string) int {
	n, _ := r[name].(float64)
	return int(n)
}

func (r row) object(name string) map[string]any {
	o, _ := r[name].(map[string]any)
	return o
}

func (r row) list(name string) []string {
	var all []string
	items, _ := r[name].([]any)
	for _, i := range items {
		if text, ok := i.(string); ok {
			all = append(all, text)
		}
	}
	return all
}

var days = []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}

// fieldsOf returns the fields of a form with the values of a row; a new row has none.
func (v *view) fieldsOf(kind configfile.Resource, names []string, r row) []*formField {
	var all []*formField
	for _, f := range kind.Fields {
		if names != nil && !slices.Contains(names, f.Name) {
			continue
		}
		parts := kind.Parts(f.Name)
		if kind.Name == "channel" && f.Name == "posting_window" {
			for _, day := range days {
				all = append(all, v.fieldOf(kind, configfile.Field{Name: f.Name + "." + day, Type: configfile.Text}, spansText(r.object(f.Name)[day])))
			}
			continue
		}
		for _, part := range parts {
			value := ""
			if r != nil {
				value = textOf(part.Type, r.object(f.Name)[part.Name])
			}
			part.Name = f.Name + "." + part.Name
			all = append(all, v.fieldOf(kind, part, value))
		}
		if len(parts) == 0 {
			field := v.fieldOf(kind, f, textOf(f.Type, r[f.Name]))
			field.Fixed = r != nil && field.Rule.Fixed
			all = append(all, field)
		} else if kind.Name != "channel" || f.Name != "route_filter" {
			rest := maps.Clone(r.object(f.Name))
			maps.DeleteFunc(rest, func(key string, _ any) bool {
				return slices.ContainsFunc(parts, func(p configfile.Field) bool { return p.Name == key })
			})
			field := v.fieldOf(kind, f, textOf(configfile.Object, restOf(rest)))
			field.Rest = true
			all = append(all, field)
		}
	}
	return all
}

// restOf is nil for an empty object, so that its field is empty.
func restOf(rest map[string]any) any {
	if len(rest) == 0 {
		return nil
	}
	return rest
}

// bounds says what a number may be. most is nil without a largest one; unit is "" without a unit.
func (v *view) bounds(least float64, most *float64, unit string) string {
	if most == nil {
		return v.t("field.from", strings.TrimSpace(number(least)+" "+unit))
	}
	return v.t("field.range", number(least), strings.TrimSpace(number(*most)+" "+unit))
}

// fieldOf returns a field with its words. A hint is that of the command line in English.
func (v *view) fieldOf(kind configfile.Resource, f configfile.Field, value string) *formField {
	field := &formField{Name: f.Name, Value: value, Rule: kind.Rule(f.Name), Type: f.Type}
	field.Label = v.or("field."+kind.Name+"."+f.Name, v.t("field."+f.Name))
	field.Hint = v.or("hint."+kind.Name+"."+f.Name, "")
	if field.Hint == "" && v.words.code == "en" && f.Help != "" {
		field.Hint = sentenceOf(f.Help)
	}
	if field.Rule.Bounded {
		most := &field.Rule.Most
		if math.IsInf(*most, 1) || *most >= math.MaxInt32 {
			most = nil
		}
		field.Hint = strings.TrimSpace(field.Hint + " " + v.bounds(field.Rule.Least, most, v.or("unit."+field.Rule.Unit, "")))
	}
	switch {
	case f.Type == configfile.Boolean:
		field.Choices = []choice{{"true", v.t("yes")}, {"false", v.t("no")}}
	case field.Rule.In != nil:
		for _, value := range field.Rule.In {
			field.Choices = append(field.Choices, choice{value, v.or("value."+f.Name+"."+value, v.or("value."+value, platformName(value)))})
		}
	}
	if field.Choices != nil && !field.Rule.Required {
		field.Choices = append([]choice{{"", v.t("field.default")}}, field.Choices...)
	}
	return field
}

func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// textOf writes a value as a person types it.
func textOf(kind configfile.FieldType, value any) string {
	if value == nil {
		return ""
	}
	switch kind {
	case configfile.List:
		items, _ := value.([]any)
		texts := make([]string, 0, len(items))
		for _, i := range items {
			text, ok := i.(string)
			if !ok || strings.Contains(text, ",") || strings.HasPrefix(text, "[") {
				return jsonText(value, "")
			}
			texts = append(texts, text)
		}
		return strings.Join(texts, ", ")
	case configfile.Number:
		if n, ok := value.(float64); ok {
			return number(n)
		}
	case configfile.Object:
		if o, ok := value.(map[string]any); ok && len(o) == 0 {
			return ""
		}
		return jsonText(value, "  ")
	}
	if text, ok := value.(string); ok {
		return text
	}
	return jsonText(value, "")
}

func jsonText(value any, indent string) string {
	raw, _ := json.MarshalIndent(value, "", indent) // decoded JSON can be encoded
	if indent == "" {
		raw, _ = json.Marshal(value)
	}
	return string(raw)
}

// spansText writes the hours of a day, like 09:00-12:00, 14:00-24:00.
func spansText(value any) string {
	var spans []string
	items, _ := value.([]any)
	for _, i := range items {
		if pair, ok := i.([]any); ok && len(pair) == 2 {
			spans = append(spans, textOf(configfile.Text, pair[0])+"-"+textOf(configfile.Text, pair[1]))
		}
	}
	return strings.Join(spans, ", ")
}

func spansOf(written string) [][]string {
	var spans [][]string
	for span := range strings.SplitSeq(written, ",") {
		from, until, _ := strings.Cut(strings.NewReplacer("–", "-", " ", "").Replace(span), "-")
		if from != "" || until != "" {
			spans = append(spans, []string{from, until})
		}
	}
	return spans
}

// read takes the values of a form that was sent.
func (f *form) read(values url.Values) {
	f.ID, f.Version, f.Reason = strings.TrimSpace(values.Get("id")), values.Get("version"), strings.TrimSpace(values.Get("reason"))
	for _, field := range f.Fields {
		if !field.Fixed && values.Has(field.Name) {
			field.Value = strings.ReplaceAll(values.Get(field.Name), "\r\n", "\n")
			if !field.Rule.Lines && field.Type != configfile.Object {
				field.Value = strings.TrimSpace(field.Value)
			}
		}
	}
}

// changes returns what differs from the stored row, as the API takes it. ok is false if a value cannot be read.
func (f *form) changes(v *view, kind configfile.Resource, stored []*formField, r row) (changed map[string]any, ok bool) {
	changed, ok = map[string]any{}, true
	touched := map[string][]*formField{}
	for i, field := range f.Fields {
		if !field.Fixed && field.Value != stored[i].Value {
			touched[field.column()] = append(touched[field.column()], field)
		}
		if field.Rule.Required && !field.Fixed && field.Value == "" {
			field.Fault, ok = v.t("fault.missing"), false
		}
		if strings.Contains(field.Value, "[redacted]") && field.Value != stored[i].Value {
			field.Fault, ok = v.t("fault.masked"), false
		}
	}
	for column, fields := range touched {
		if fields[0].key() == "" && !fields[0].Rest {
			value, err := valueOf(fields[0])
			if err != nil {
				fields[0].Fault, fields[0].Detail, ok = v.t("fault.form"), err.Error(), false
			}
			changed[column] = value
			continue
		}
		whole, sound := f.object(v, column)
		if ok = ok && sound; !sound {
			continue
		}
		changed[column] = whole
		if kind.Name == "source" {
			changed[column] = merged(r.object(column), whole)
		} else if len(whole) == 0 {
			changed[column] = nil
		}
	}
	return changed, ok
}

// object puts the fields of an object together.
func (f *form) object(v *view, column string) (whole map[string]any, ok bool) {
	whole, ok = map[string]any{}, true
	for _, field := range f.Fields {
		if field.column() != column || field.Value == "" {
			continue
		}
		if column == "posting_window" {
			whole[field.key()] = spansOf(field.Value)
			continue
		}
		value, err := valueOf(field)
		rest, isObject := value.(map[string]any)
		switch {
		case err != nil || field.Rest && !isObject:
			field.Fault, ok = v.t("fault.json"), false
			if err != nil {
				field.Detail = err.Error()
			}
		case field.Rest:
			maps.Copy(whole, rest)
		default:
			whole[field.key()] = value
		}
	}
	return whole, ok
}

// merged returns the keys that differ from the stored ones; null removes a key. Masked values that did not change stay.
func merged(stored, whole map[string]any) map[string]any {
	changed := map[string]any{}
	for key, value := range whole {
		if jsonText(value, "") != jsonText(stored[key], "") {
			changed[key] = value
		}
	}
	for key := range stored {
		if _, kept := whole[key]; !kept {
			changed[key] = nil
		}
	}
	return changed
}

// valueOf reads a value; an empty one is null.
func valueOf(field *formField) (any, error) {
	if field.Value == "" {
		return nil, nil //nolint:nilnil // null restores the default
	}
	raw, err := configfile.Field{Name: field.Name, Type: field.Type}.Value(field.Value)
	if err != nil {
		return nil, err
	}
	var value any
	return value, json.Unmarshal(raw, &value)
}

// refuse shows a refusal beside the fields that it names. It returns false for another error.
func (f *form) refuse(v *view, err error) (status int, shown bool) {
	p := (*problem.Problem)(nil)
	wrong := (*autopost.ArgumentError)(nil)
	switch {
	case errors.As(err, &wrong):
		f.Fault, f.Detail = v.t("error.title.wrong-request"), v.faultOf(wrong)
		return http.StatusUnprocessableEntity, true
	case !errors.As(err, &p) || p.Status >= http.StatusInternalServerError || p.Status == http.StatusForbidden || p.Status == http.StatusNotFound:
		return 0, false
	}
	f.Fault = v.or("refused."+p.Reason, v.errorTitle(p))
	if len(p.Errors) == 0 {
		f.Detail, _ = v.refusal(p)
	}
	for _, e := range p.Errors {
		detail := v.detailOf(e)
		if field := f.named(e.Field); field != nil {
			if field.Fault = v.faultWords(e); detail != field.Fault {
				field.Detail = detail
			}
		} else {
			f.Detail = strings.TrimSpace(f.Detail + " " + e.Field + " " + detail)
		}
	}
	return p.Status, true
}

func sentenceOf(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
}

// named returns the field of a path in an error, such as config_json.url or posting_window.mon[0].
func (f *form) named(path string) *formField {
	path = strings.TrimPrefix(strings.TrimPrefix(path, "body."), "fields.")
	for path != "" {
		for _, field := range f.Fields {
			if field.Name == path || field.column() == path && !slices.ContainsFunc(f.Fields, func(o *formField) bool { return o.Name == path }) {
				return field
			}
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return nil
}

// faultWords says in the language of the person what is wrong with a value. Rules without a code are known by their words.
func (v *view) faultWords(e problem.Fault) string {
	if e.Code != "" {
		return v.or("fault."+e.Code, v.t("fault.value"))
	}
	for _, known := range []struct{ part, key string }{
		{"is missing", "fault.missing"}, {"out of range", "fault.out_of_range"}, {"is unknown", "fault.unknown_value"}, {"cannot be changed", "fault.fixed"},
		{"whole number", "fault.not_whole_number"}, {"must be a number", "fault.not_number"}, {"already", "fault.taken"},
	} {
		if strings.Contains(e.Reason, known.part) {
			return v.t(known.key)
		}
	}
	return v.t("fault.value")
}

// faults returns how many fields are wrong.
func (f *form) faults() (wrong []*formField) {
	for _, field := range f.Fields {
		if field.Fault != "" {
			wrong = append(wrong, field)
		}
	}
	return wrong
}

// compare marks the fields that another person changed since the form was opened.
func (f *form) compare(stored []*formField) {
	for i, field := range f.Fields {
		if stored[i].Value != field.Value {
			field.Now = stored[i].Value
		}
	}
}
