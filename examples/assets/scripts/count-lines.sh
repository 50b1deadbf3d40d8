# Counts the lines of the files that PATTERN names
cat $PATTERN | wc -l | tr -d ' '
