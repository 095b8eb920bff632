"""What `hubbub doctor` looks at, one file for each; nothing here changes anything."""
