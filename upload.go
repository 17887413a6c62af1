package autopost

import "context"

// Uploader is what an adapter may be besides: it hands a medium to its platform
// without posting anything.
type Uploader interface {
	// Upload gives the platform the medium as a post would, and keeps its id in
	// upload.Media for the deliveries that come; one that is kept there and still good
	// is given to nobody again. ctx carries the deadline. A failure has posted nothing
	// and is definite; one of code …_not_ready says that the platform still works on
	// what it was given, and that asking again goes on from there.
	Upload(ctx context.Context, upload Upload) (Uploaded, *Error)
}

// Upload is all that an adapter gets to know about one.
type Upload struct {
	Secret Secret
	Media  Materials
	// Medium is what to hand over: its Type, BlobRef and Alt.
	Medium Media
}

// Uploaded is a medium that the platform has.
type Uploaded struct {
	// FileID is the platform's id of it.
	FileID string
	// Kind is what the platform takes it for: the kind under which Materials keep the id.
	Kind string
	// Used is what else of the platform the upload took that has a price; see Outcome.
	Used Used
}
