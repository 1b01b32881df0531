# awk -v out=DIR -f brown-hair.awk FILE...
#
# For each CSV file of students writes a file of the same name into DIR, with
# the heading and the rows of students with brown hair, and tells on stderr
# what it did.

function report() {
	if (name != "")
		printf "    read %s: %d of %d students have brown hair\n",
			name, n_brown, n_students >"/dev/stderr"
}

BEGIN {
	FS = ","
}

FNR == 1 {
	report()
	if (name != "")
		close(target)
	name = FILENAME
	sub(".*/", "", name)
	target = out "/" name
	n_brown = n_students = 0
	print >target
	next
}

{
	n_students++
}

$2 == "Brown" {
	n_brown++
	print >target
}

END {
	report()
}
