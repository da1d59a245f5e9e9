export const lettersForPeople = ``
