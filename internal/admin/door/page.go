package door

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

// Page is what every list takes.
type Page struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"How many rows at most."`
	Cursor string `query:"cursor" maxLength:"2000" doc:"The next_cursor of the page before this one; pass the same filters again."`
}

// Listed is the answer of a list.
type Listed[Row any] struct {
	Items []Row `json:"items" nullable:"false" doc:"The rows, in the order of the list."`
	// NextCursor is null on the last page.
	NextCursor *string `json:"next_cursor" nullable:"true" example:"WyJkZWxpdmVyaWVzIiwiMDE5OWM2YTAtMDAwMC03MDAwLTgwMDAtMDAwMDAwMDAwMDAwIl0" doc:"Where the next page begins; null on the last one."`
}

// Column is a part of the key by which a list is ordered.
type Column struct {
	// Name is the column's, in a row.
	Name string
	// Filter is the key of the filter that says after which value the next page begins.
	Filter string
	// Valid tells whether a value may stand in a cursor.
	Valid func(json.RawMessage) bool
}

// ByID is the order of a list by ids that are UUIDs, the newest first.
func ByID(name string) []Column { return []Column{{name, "before_id", validUUID}} }

// ByName is the order of a list by names that people choose.
func ByName(name string) []Column { return []Column{{name, "after", ValidText}} }

// ByTime is the order of a list of events, the newest first.
func ByTime() []Column {
	return []Column{{"ts", "before_ts", validInstant}, {"id", "before_id", validUUID}}
}

func validUUID(value json.RawMessage) bool {
	var text string
	return json.Unmarshal(value, &text) == nil && len(text) == 36 && uuid.Validate(text) == nil
}

func validInstant(value json.RawMessage) bool {
	var text string
	if json.Unmarshal(value, &text) != nil {
		return false
	}
	_, err := time.Parse(time.RFC3339Nano, text)
	return err == nil
}

// ValidText tells whether a value is a text that the database could hold.
func ValidText(value json.RawMessage) bool {
	var text string
	return json.Unmarshal(value, &text) == nil && text != "" && sound(text, "")
}

// ValidNumber tells whether a value is a whole number of a usual size.
func ValidNumber(value json.RawMessage) bool {
	var number int32
	return json.Unmarshal(value, &number) == nil
}

// decode reads where a page of the list begins into a filter. A cursor bears the name of its list.
func (l List) decode(cursor string, filter map[string]any) error {
	wrong := Wrong("query.cursor", "is none of this list", "pass the next_cursor of the page before, unchanged")
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

// encode says where the page after a row begins.
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

// List is a list of the database's.
type List struct {
	// Function and Kind are as Records names them.
	Function, Kind string
	Key            []Column
	// Nested is the key of the filter that holds all of the cursor, "" where each column has its own.
	Nested string
}

// name tells one list from another.
func (l List) name() string { return strings.TrimPrefix(l.Function, "list_") + l.Kind }

// Read answers a page of a list; an empty text of the filter is no filter.
func (d *Door) Read(ctx context.Context, list List, page Page, filter map[string]any) (Reply, error) {
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
	// One row more tells whether there is another page.
	rows, err := d.Rows(ctx, list.Function, list.Kind, kept, page.Limit+1)
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
