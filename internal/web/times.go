package web

import (
	"fmt"
	"math"
	"time"
)

// exact is an instant with its zone, for the title of a time.
func (v *view) exact(at time.Time) string {
	at = at.In(v.zone)
	return fmt.Sprintf("%d %s %d, %s %s", at.Day(), v.month(at), at.Year(), at.Format("15:04:05"), v.zoneName(at))
}

func (v *view) zoneName(at time.Time) string {
	if v.zone == time.UTC {
		return "UTC"
	}
	return v.zone.String() + " (UTC" + at.In(v.zone).Format("-07:00") + ")"
}

func (v *view) month(at time.Time) string { return v.t(fmt.Sprintf("month.%d", at.Month())) }

// day is a date without the year, or with it if it is not this year.
func (v *view) day(at time.Time) string {
	at = at.In(v.zone)
	if at.Year() == v.now.In(v.zone).Year() {
		return fmt.Sprintf("%d %s", at.Day(), v.month(at))
	}
	return fmt.Sprintf("%d %s %d", at.Day(), v.month(at), at.Year())
}

// instant is a time of a list: the hour of today, else the date with the hour. The zone is that of the reader.
func (v *view) instant(at time.Time) string {
	clock := at.In(v.zone).Format("15:04")
	if v.zone == time.UTC {
		clock += " UTC"
	}
	if sameDay(at.In(v.zone), v.now.In(v.zone)) {
		return clock
	}
	return v.day(at) + ", " + clock
}

// relative is a near time in words, "" for a far one.
func (v *view) relative(at time.Time) string {
	apart := at.Sub(v.now)
	key := "time.in_"
	if apart < 0 {
		apart, key = -apart, "time.ago_"
	}
	minutes := int(math.Round(apart.Minutes()))
	switch {
	case apart < 45*time.Second:
		return v.t("time.now")
	case minutes < 60:
		return v.n(key+"minutes", max(1, minutes))
	case apart < 24*time.Hour:
		return v.n(key+"hours", int(math.Round(apart.Hours())))
	}
	return ""
}

func sameDay(a, b time.Time) bool {
	return a.Year() == b.Year() && a.YearDay() == b.YearDay()
}
