package rest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Page are the parameters of every list.
type Page struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"The most rows of the page."`
	Cursor string `query:"cursor" maxLength:"2000" doc:"The next_cursor of the previous page. Send the same filters."`
}

// Listed is one page of a list.
type Listed[Row any] struct {
	Items []Row `json:"items" nullable:"false" doc:"The rows, in the order of the list."`
	// NextCursor is null on the last page.
	NextCursor *string `json:"next_cursor" nullable:"true" example:"WyJkZWxpdmVyaWVzIiwiMDE5OWM2YTAtMDAwMC03MDAwLTgwMDAtMDAwMDAwMDAwMDAwIl0" doc:"The cursor of the next page; null on the last page."`
}

// Column is a part of the sort key of a list.
type Column struct {
	// Name is the column of a row.
	Name string
	// Filter is the filter that starts a page after a value of the column.
	Filter string
	// Valid reports whether a cursor may contain a value.
	Valid func(json.RawMessage) bool
}

// ByID sorts a list by UUIDs, newest first.
func ByID(name string) []Column { return []Column{{name, "before_id", validUUID}} }

// ByName sorts a list by names.
func ByName(name string) []Column { return []Column{{name, "after", ValidText}} }

// ByInstant sorts a list by an instant, earliest first, then by an id.
func ByInstant(at, id string) []Column {
	return []Column{{at, at, ValidInstant}, {id, id, validUUID}}
}

// ByTime sorts a list of events by time, newest first.
func ByTime() []Column {
	return []Column{{"ts", "before_ts", ValidInstant}, {"id", "before_id", validUUID}}
}

// ByUse sorts media by their last use, latest first.
func ByUse() []Column {
	return []Column{{"last_seen_at", "before_seen", ValidInstant}, {"blob_ref", "before_ref", ValidText}}
}

func validUUID(value json.RawMessage) bool {
	var text string
	return json.Unmarshal(value, &text) == nil && len(text) == 36 && uuid.Validate(text) == nil
}

// ValidInstant reports whether a value is an instant in RFC 3339.
func ValidInstant(value json.RawMessage) bool {
	var text string
	if json.Unmarshal(value, &text) != nil {
		return false
	}
	_, err := time.Parse(time.RFC3339Nano, text)
	return err == nil
}

// ValidText reports whether a value is a non-empty text that the database can store.
func ValidText(value json.RawMessage) bool {
	var text string
	return json.Unmarshal(value, &text) == nil && text != "" && sound(text, "")
}

// ValidNumber reports whether a value is an integer of 32 bits.
func ValidNumber(value json.RawMessage) bool {
	var number int32
	return json.Unmarshal(value, &number) == nil
}

// decode adds the start of a page to a filter. A cursor is valid only for the list that issued it.
func (l List) decode(cursor string, filter map[string]any) error {
	wrong := Wrong("query.cursor", "must be a cursor of this list", "send the next_cursor of the previous page unchanged")
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || !utf8.Valid(raw) {
		return wrong
	}
	var values []json.RawMessage
	var name string
	if json.Unmarshal(raw, &values) != nil || len(values) != 1+len(l.Key) || json.Unmarshal(values[0], &name) != nil || name != l.name() {
		return wrong
	}
	for i, column := range l.Key {
		if !column.Valid(values[i+1]) {
			return wrong
		}
		filter[column.Filter] = values[i+1]
	}
	return nil
}

// encode returns the cursor of the page after a row.
func (l List) encode(row json.RawMessage) (string, error) {
	var columns map[string]json.RawMessage
	if err := json.Unmarshal(row, &columns); err != nil {
		return "", fmt.Errorf("read a row: %w", err)
	}
	values := []any{l.name()}
	for _, column := range l.Key {
		values = append(values, columns[column.Name])
	}
	raw, err := json.Marshal(values)
	if err != nil {
		return "", fmt.Errorf("write a cursor: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(raw), nil
}

// List is a list of the database.
type List struct {
	// Function and Kind are those of Query.
	Function, Kind string
	Key            []Column
	// Nested is the filter that holds all columns of the cursor; "" if each column has its own filter.
	Nested string
}

// name identifies the list in its cursors.
func (l List) name() string { return strings.TrimPrefix(l.Function, "list_") + l.Kind }

// Read replies with a page of a list. An empty string in filter does not filter.
func (d *Server) Read(ctx context.Context, list List, page Page, filter map[string]any) (Reply, error) {
	kept := map[string]any{}
	for name, value := range filter {
		if value != "" {
			kept[name] = value
		}
	}
	if page.Cursor != "" {
		into := kept
		if list.Nested != "" {
			into = map[string]any{}
			kept[list.Nested] = into
		}
		if err := list.decode(page.Cursor, into); err != nil {
			return Reply{}, err
		}
	}
	// One additional row shows whether there is another page.
	rows, err := d.Rows(ctx, Query{Function: list.Function, Kind: list.Kind, Filter: kept, Limit: page.Limit + 1})
	if err != nil {
		return Reply{}, err
	}
	answer := Listed[json.RawMessage]{Items: rows}
	if len(rows) > page.Limit {
		answer.Items = rows[:page.Limit]
		next, err := list.encode(rows[page.Limit-1])
		if err != nil {
			return Reply{}, err
		}
		answer.NextCursor = &next
	}
	return replyOf(answer)
}

func replyOf(answer any) (Reply, error) {
	body, err := json.Marshal(answer)
	if err != nil {
		return Reply{}, fmt.Errorf("write an answer: %w", err)
	}
	return Reply{Body: body}, nil
}
