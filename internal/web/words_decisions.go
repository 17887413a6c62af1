package web

// decisionsWords are the words of the decisions pages.
var decisionsWords = area{
	en: map[string]string{
		"decision.history": "History",
		"decision.void":    "void: the post changed afterwards",
	},
	ru: map[string]string{
		"decision.history": "История",
		"decision.void":    "не в счёт: публикация потом изменилась",
	},
}
