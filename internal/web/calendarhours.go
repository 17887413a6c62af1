package web

import (
	"time"
)

// hourRow is a row of the week and the day: an hour of the clock. An hour that the clocks repeat has a second row.
type hourRow struct {
	Hour int
	// Again means the second time of an hour that the clocks repeat.
	Again bool
	// Label is the hour; Note says what the clocks do.
	Label, Note string
	Cells       []hourCell
	// Folded is set on the first row of hours without anything; it stands for all of them.
	Folded bool
	Last   int
}

// hourCell is an hour of a day.
type hourCell struct {
	// Begin is the instant; zero if the day does not have this hour.
	Begin time.Time
	Items []calendarEntry
	// Closed means that most channels are outside their posting window.
	Closed, Now bool
	// Skipped means that the clocks skip the hour on this day.
	Skipped bool
}

// hoursOf returns the hours of a day, each with the instants at which it begins: none if the clocks skip it, two if they repeat it.
func hoursOf(day time.Time) (all [24][]time.Time) {
	end := day.AddDate(0, 0, 1)
	for at := day; at.Before(end); at = at.Add(time.Hour) {
		all[at.Hour()] = append(all[at.Hour()], at)
	}
	return all
}

// hours returns the rows of the table.
func (d *calendarData) hours(v *view) (rows []hourRow) {
	days := make([][24][]time.Time, len(d.Days))
	for i, day := range d.Days {
		days[i] = hoursOf(day.Date)
	}
	for hour := range 24 {
		for _, again := range []bool{false, true} {
			row := hourRow{Hour: hour, Again: again, Label: clockLabel(hour)}
			begins := false
			for i := range d.Days {
				cell := hourCell{}
				switch instants := days[i][hour]; {
				case again && len(instants) > 1:
					cell.Begin, begins = instants[1], true
					row.Note = v.t("calendar.again", instants[1].Format("-07:00"))
				case !again && len(instants) > 0:
					cell.Begin, begins = instants[0], true
				case !again:
					cell.Skipped, begins = true, true
					row.Note = v.t("calendar.skipped")
				}
				if !cell.Begin.IsZero() {
					d.fill(&cell, d.Days[i], v.now)
				}
				row.Cells = append(row.Cells, cell)
			}
			if begins {
				rows = append(rows, row)
			}
		}
	}
	if d.AllHours {
		return rows
	}
	return folded(rows)
}

func clockLabel(hour int) string {
	return time.Date(2000, 1, 1, hour, 0, 0, 0, time.UTC).Format("15:04")
}

func (d *calendarData) fill(cell *hourCell, day calendarDay, now time.Time) {
	end := cell.Begin.Add(time.Hour)
	cell.Closed = d.Closed[cell.Begin.Unix()]
	cell.Now = !now.Before(cell.Begin) && now.Before(end)
	for _, item := range day.Items {
		if !item.At.Before(cell.Begin) && item.At.Before(end) {
			cell.Items = append(cell.Items, item)
		}
	}
}

// isQuiet reports whether a row has nothing to show.
func (r hourRow) isQuiet() bool {
	if r.Note != "" {
		return false
	}
	for _, c := range r.Cells {
		if len(c.Items) > 0 || c.Now {
			return false
		}
	}
	return true
}

// folded puts the hours of the night and of the evening in one row if nothing is planned in them.
func folded(rows []hourRow) (all []hourRow) {
	first, last := 0, len(rows)
	for first < len(rows) && rows[first].Hour < 8 && rows[first].isQuiet() {
		first++
	}
	for last > first && rows[last-1].Hour >= 20 && rows[last-1].isQuiet() {
		last--
	}
	if first > 1 {
		all = append(all, hourRow{Folded: true, Hour: 0, Last: rows[first-1].Hour + 1})
	} else {
		first = 0
	}
	if last > len(rows)-2 {
		last = len(rows)
	}
	all = append(all, rows[first:last]...)
	if last < len(rows) {
		all = append(all, hourRow{Folded: true, Hour: rows[last].Hour, Last: 24})
	}
	return all
}
