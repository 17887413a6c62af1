package autopost

import "context"

// Uploader is optional for an adapter: it uploads a medium to its platform without a post.
type Uploader interface {
	// Upload uploads the medium as a post would, and stores its id in upload.Media for later
	// deliveries. If upload.Media has a valid id, nothing is uploaded. ctx has the deadline. A failure
	// is definite, and nothing was posted. A code …_not_ready means that the platform is still
	// processing the medium; a repeated call continues from there.
	Upload(ctx context.Context, upload Upload) (Uploaded, *Error)
}

// Upload is the input of an upload.
type Upload struct {
	Secret Secret
	Media  MediaAccess
	// Medium is the medium to upload: its Type, BlobRef and Alt.
	Medium Media
}

// Uploaded is an uploaded medium.
type Uploaded struct {
	// FileID is the platform's id of the medium.
	FileID string
	// Kind is the kind under which MediaAccess stores the id.
	Kind string
	// Used counts the priced uses of the platform by the upload; see Outcome.
	Used Used
}
