package twitter

import (
	"regexp"
	"strings"
)

// The parts of the emoji sequences that twitter-text 3.1 knows (Emoji 11). X shows each as one picture.
// A newer sequence counts as its code points, which never counts too little.
const (
	joiner = `\x{200D}`
	style  = `\x{FE0F}`
	skin   = `[\x{1F3FB}-\x{1F3FF}]`
	man    = `\x{1F468}`
	woman  = `\x{1F469}`
	boy    = `\x{1F466}`
	girl   = `\x{1F467}`
	love   = `\x{2764}`
	gender = `[\x{2640}\x{2642}]`
	kiss   = `\x{1F48B}`

	// professions follow a man or a woman.
	professions = `(?:[\x{2695}\x{2696}\x{2708}]` + style + `|[` + `\x{1F33E}\x{1F373}\x{1F393}\x{1F3A4}\x{1F3A8}\x{1F3EB}\x{1F3ED}\x{1F4BB}-\x{1F4BC}\x{1F527}\x{1F52C}` +
		`\x{1F680}\x{1F692}\x{1F9B0}-\x{1F9B3}` + `])`
	// persons may be followed by a gender.
	persons = `[` + `\x{1F3C3}-\x{1F3C4}\x{1F3CA}\x{1F46E}\x{1F471}\x{1F473}\x{1F477}\x{1F481}-\x{1F482}\x{1F486}-\x{1F487}` +
		`\x{1F645}-\x{1F647}\x{1F64B}\x{1F64D}-\x{1F64E}\x{1F6A3}\x{1F6B4}-\x{1F6B6}\x{1F926}\x{1F935}` +
		`\x{1F937}-\x{1F939}\x{1F93D}-\x{1F93E}\x{1F9B8}-\x{1F9B9}\x{1F9D6}-\x{1F9DD}` + `]`
	// athletes are followed by a gender only after a skin tone or the style.
	athletes = `[\x{1F3CB}\x{1F3CC}\x{1F574}\x{1F575}\x{26F9}]`
	// styled are symbols that are pictures with the style; hands and toned may have a skin tone, hands a style too.
	styled = `[` + `\x{A9}\x{AE}\x{2122}\x{265F}\x{203C}\x{2049}\x{2139}\x{2194}-\x{2199}\x{21A9}-\x{21AA}\x{231A}-\x{231B}` +
		`\x{2328}\x{23CF}\x{23ED}-\x{23EF}\x{23F1}-\x{23F2}\x{23F8}-\x{23FA}\x{24C2}\x{25AA}-\x{25AB}\x{25B6}\x{25C0}` +
		`\x{25FB}-\x{25FE}\x{2600}-\x{2604}\x{260E}\x{2611}\x{2614}-\x{2615}\x{2618}\x{2620}\x{2622}-\x{2623}\x{2626}` +
		`\x{262A}\x{262E}-\x{262F}\x{2638}-\x{263A}\x{2640}\x{2642}\x{2648}-\x{2653}\x{2660}\x{2663}\x{2665}-\x{2666}` +
		`\x{2668}\x{267B}\x{267F}\x{2692}-\x{2697}\x{2699}\x{269B}-\x{269C}\x{26A0}-\x{26A1}\x{26AA}-\x{26AB}` +
		`\x{26B0}-\x{26B1}\x{26BD}-\x{26BE}\x{26C4}-\x{26C5}\x{26C8}\x{26CF}\x{26D1}\x{26D3}-\x{26D4}` +
		`\x{26E9}-\x{26EA}\x{26F0}-\x{26F5}\x{26F8}\x{26FA}\x{26FD}\x{2702}\x{2708}-\x{2709}\x{270F}\x{2712}\x{2714}` +
		`\x{2716}\x{271D}\x{2721}\x{2733}-\x{2734}\x{2744}\x{2747}\x{2757}\x{2763}-\x{2764}\x{27A1}\x{2934}-\x{2935}` +
		`\x{2B05}-\x{2B07}\x{2B1B}-\x{2B1C}\x{2B50}\x{2B55}\x{3030}\x{303D}\x{3297}\x{3299}\x{1F004}` +
		`\x{1F170}-\x{1F171}\x{1F17E}-\x{1F17F}\x{1F202}\x{1F21A}\x{1F22F}\x{1F237}\x{1F321}\x{1F324}-\x{1F32C}` +
		`\x{1F336}\x{1F37D}\x{1F396}-\x{1F397}\x{1F399}-\x{1F39B}\x{1F39E}-\x{1F39F}\x{1F3CD}-\x{1F3CE}` +
		`\x{1F3D4}-\x{1F3DF}\x{1F3F3}\x{1F3F5}\x{1F3F7}\x{1F43F}\x{1F441}\x{1F4FD}\x{1F549}-\x{1F54A}` +
		`\x{1F56F}-\x{1F570}\x{1F573}\x{1F576}-\x{1F579}\x{1F587}\x{1F58A}-\x{1F58D}\x{1F5A5}\x{1F5A8}` +
		`\x{1F5B1}-\x{1F5B2}\x{1F5BC}\x{1F5C2}-\x{1F5C4}\x{1F5D1}-\x{1F5D3}\x{1F5DC}-\x{1F5DE}\x{1F5E1}\x{1F5E3}` +
		`\x{1F5E8}\x{1F5EF}\x{1F5F3}\x{1F5FA}\x{1F6CB}\x{1F6CD}-\x{1F6CF}\x{1F6E0}-\x{1F6E5}\x{1F6E9}\x{1F6F0}` +
		`\x{1F6F3}` + `]`
	hands = `[` + `\x{261D}\x{26F7}\x{26F9}\x{270C}-\x{270D}\x{1F3CB}-\x{1F3CC}\x{1F574}-\x{1F575}\x{1F590}` + `]`
	toned = `[` + `\x{270A}-\x{270B}\x{1F385}\x{1F3C2}-\x{1F3C4}\x{1F3C7}\x{1F3CA}\x{1F442}-\x{1F443}\x{1F446}-\x{1F450}` +
		`\x{1F466}-\x{1F469}\x{1F46E}\x{1F470}-\x{1F478}\x{1F47C}\x{1F481}-\x{1F483}\x{1F485}-\x{1F487}\x{1F4AA}` +
		`\x{1F57A}\x{1F595}-\x{1F596}\x{1F645}-\x{1F647}\x{1F64B}-\x{1F64F}\x{1F6A3}\x{1F6B4}-\x{1F6B6}\x{1F6C0}` +
		`\x{1F6CC}\x{1F918}-\x{1F91C}\x{1F91E}-\x{1F91F}\x{1F926}\x{1F930}-\x{1F939}\x{1F93D}-\x{1F93E}` +
		`\x{1F9B5}-\x{1F9B6}\x{1F9B8}-\x{1F9B9}\x{1F9D1}-\x{1F9DD}` + `]`
	couples      = man + `(?:` + joiner + `[` + man + woman + `])?|` + woman + `(?:` + joiner + woman + `)?`
	children     = boy + joiner + boy + `|` + girl + joiner + `[` + boy + girl + `]|[` + boy + girl + `]`
	subdivisions = `\x{1F3F4}(?:\x{E0067}\x{E0062}(?:\x{E0065}\x{E006E}\x{E0067}|\x{E0073}\x{E0063}\x{E0074}|\x{E0077}\x{E006C}\x{E0073})\x{E007F})`
)

// countries are the flags: the first letter, then the second ones.
const countries = "A[CDEFGILMOQRSTUWXZ] B[ABDEFGHIJLMNOQRSTVWYZ] C[ACDFGHIKLMNOPRUVWXYZ] D[EGJKMOZ] E[ACEGHRSTU] " +
	"F[IJKMOR] G[ABDEFGHILMNPQRSTUWY] H[KMNRTU] I[CDELMNOQRST] J[EMOP] K[EGHIMNPRWYZ] L[ABCIKRSTUVY] " +
	"M[ACDEFGHKLMNOPQRSTUVWXYZ] N[ACEFGILOPRUZ] OM P[AEFGHKLMNRSTWY] QA R[EOSUW] S[ABCDEGHIJKLMNORSTVXYZ] " +
	"T[ACDFGHJKLMNORTVWZ] U[AGMNSYZ] V[ACEGINU] W[FS] XK Y[ET] Z[AMW]"

// emoji matches one sequence of several code points.
var emoji = regexp.MustCompile(strings.Join([]string{
	`[` + man + woman + `]` + skin + `?` + joiner + professions,
	athletes + `(?:` + skin + `|` + style + `)` + joiner + gender + style,
	persons + skin + `?` + joiner + gender + style,
	man + joiner + love + style + joiner + `(?:` + kiss + joiner + `)?` + man,
	woman + joiner + love + style + joiner + `(?:` + kiss + joiner + `)?[` + man + woman + `]`,
	`(?:` + couples + `)` + joiner + `(?:` + children + `)`,
	`\x{1F3F3}` + style + joiner + `\x{1F308}`,
	`\x{1F3F4}` + joiner + `\x{2620}` + style,
	`\x{1F441}` + joiner + `\x{1F5E8}`,
	`[\x{1F46F}\x{1F93C}\x{1F9DE}\x{1F9DF}]` + joiner + gender + style,
	`[#*0-9]` + style + `?\x{20E3}`,
	styled + style,
	hands + style + `?` + skin + `?`,
	toned + skin + `?`,
	subdivisions,
	flags(),
}, "|"))

// flags is the pattern of all countries. A letter of a flag is a regional indicator symbol.
func flags() string {
	const indicatorA = 0x1F1E6
	return "(?:" + strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '|'
		case 'A' <= r && r <= 'Z':
			return r - 'A' + indicatorA
		}
		return r
	}, countries) + ")"
}
